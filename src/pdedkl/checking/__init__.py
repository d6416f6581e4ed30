"""After training: is the posterior as good as it says, what causes its error, and where would more points help most?"""
