"""MCP server for coding assistants: the shell's commands as tools of the Model Context Protocol."""
