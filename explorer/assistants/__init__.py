"""Programs that write code as users: what the shell's verbs say, as tools of the Model Context Protocol."""
