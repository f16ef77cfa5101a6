"""Which groups of trips the rows of several releases show by sums and differences.

Rows are equations: each says how many trips there are in some *columns*, where a column is a set of trips that the
rows do not tell apart. A group is shown if its indicator is a combination of rows; columns that must be empty, because
a sum of rows without a trip contains them, do not count. Every such group is made of smallest ones, which are found.

With rows on two sides, those of a side having no trip in common, each smallest group is *some rows of one side less all
rows of the other that lie inside them* (of any combination the levels are such differences), and the cheapest one
through a given column is a minimum cut. With rows on more sides, combinations are enumerated where there are few.
"""
