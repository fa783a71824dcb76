"""From the merged tree to one commit on the Space, with a ledger of how each row came there."""
