"""Options and arguments that several commands share: secrets, certificates, names, quantities."""
