"""Groups of trips that the rows of several releases disclose by sums and differences.

Rows are equations over *columns*: sets of trips that are in exactly the same rows. A group is disclosed if its
indicator is a linear combination of rows, up to columns that must be empty because a sum of rows without trips contains
them. Every such group is a union of smallest ones, which are searched for.

With rows on two sides, those of one side being disjoint, each smallest group is *some rows of one side minus all rows
of the other inside them* (the level sets of any combination are such differences), and the cheapest one through a given
column is a minimum cut. With rows on more sides, combinations are enumerated if there are few.
"""
