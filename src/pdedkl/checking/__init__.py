"""After training: is the posterior as good as it says, what rules its error, and where would more points help most?"""
