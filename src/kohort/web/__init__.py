"""The dashboard: a cluster as people look at it, read-only, in a browser.

A follower keeps what the scheduler reads up to date, the view makes rows of it, and a page of plain JavaScript draws
them. Who may see what is asked of the cluster (decision 28).
"""
