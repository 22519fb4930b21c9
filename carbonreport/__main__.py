"""`python -m carbonreport`."""

from carbonreport.cli.main import main

main()
