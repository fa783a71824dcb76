"""Trust levels: from verified records to what a row of the board may say."""
