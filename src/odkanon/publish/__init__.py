"""What is written for others: release folders, pages, exports."""
