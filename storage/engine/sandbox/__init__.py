"""The sandbox: expressions of tenants are evaluated in worker processes that can reach nothing.

`Pool` hands out workers, one tenant each; `inside/` is all that runs in a worker.
"""
