# SPDX-License-Identifier: BSD-3-Clause
# prank.awk: make prank.h, the declarations of prank_X, from the parts of rank.h.
BEGIN {
    print "/* SPDX-License-Identifier: BSD-3-Clause */"
    print "/*"
    print " * prank.h: declare the library's functions under the names that a profiling tool calls."
    print " *"
    print " * rank_X is a weak name of prank_X. A tool that is linked or preloaded defines rank_X, measures, and calls prank_X."
    print " * Calls inside the library are not intercepted."
    print " */"
    print "#ifndef RANK_PRANK_H\n#define RANK_PRANK_H\n\n#include <rank.h>\n"
    print "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
}
/^RANK_API / {
    inside = 1
    sub(/rank_[a-z0-9_]+\(/, "p&")
}
inside { print }
/;/ { inside = 0 }
END { print "\n#ifdef __cplusplus\n}\n#endif\n\n#endif" }
