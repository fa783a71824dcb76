"""What a submission or a pull request is checked for: a file a rule that has logic."""
