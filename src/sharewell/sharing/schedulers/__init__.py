"""The schedulers, one a file; `sharewell.sharing.scheduler` is the way in."""
