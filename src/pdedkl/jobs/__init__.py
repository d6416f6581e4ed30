"""Many independent jobs: in this process, in worker processes, or on a Dask cluster."""

from .base import Job, Pool, Serial, open_pool

__all__ = ["Job", "Pool", "Serial", "open_pool"]
