"""What else could be done with a budget: Sharewell beside its alternatives, on the same streams.

`streams` says who asks what, `rivals` holds the alternatives, written from their papers, `sharewell` the
product's own mechanism with several settings, and `comparison` plays all of them and reports.
"""
