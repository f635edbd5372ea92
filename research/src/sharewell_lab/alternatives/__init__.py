"""What else could be done with a budget: Sharewell beside its alternatives, on the same streams.

`streams` says who asks what, `rivals` holds the alternatives, written from their papers, `proposals` the
product's own mechanism with the settings that it recommends, `comparison` plays all of them, `closing`
says what a closing round adds, and `report` writes tables, a figure and a page.
"""
