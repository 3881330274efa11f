# SPDX-License-Identifier: BSD-3-Clause
# mpi4py_tests.py NAME MAIN ARGUMENT...: run mpi4py's tests, MAIN, without NAME.
import runpy
import sys
import unittest

without, main = sys.argv[1:3]
names = unittest.TestLoader.getTestCaseNames
unittest.TestLoader.getTestCaseNames = lambda self, case: [n for n in names(self, case) if n != without]
sys.argv[:3] = [main]
runpy.run_path(main, run_name="__main__")
