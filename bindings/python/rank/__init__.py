# SPDX-License-Identifier: BSD-3-Clause
"""Messages, one-sided access and collectives between processes: see README.md."""

from ._rank import *  # noqa: F401,F403
from ._rank import __version__ as __version__  # noqa: F401
from ._aio import accept as accept, connect as connect  # noqa: F401
