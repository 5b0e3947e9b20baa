"""What makes two strings one name: spellings, words, n-grams and their comparison."""
