/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine_xml.h: write machines that we do not have as XML.
 *
 * A machine has a line a NUMA node.
 * In a line, [ ] is a host bridge, ( ) a PCI bridge, and a letter a device:
 * G NVIDIA without a driver, A AMD of class 0380, a AMD of class 1200, I Intel of class 1200, i Intel with a screen,
 * V the screen of a baseboard controller, M InfiniBand with ib0, m the same with its port down, R RoCE, E Ethernet,
 * e Ethernet without a driver, S Slingshot.
 */
#ifndef TESTS_UNIT_MACHINE_XML_H
#define TESTS_UNIT_MACHINE_XML_H

#include "lib/topo/topo_machine.h"
#include "tests/unit/unit.h"

/* A switch below a root port, with a place for each device. */
#define SWITCH(devices) "(("  devices "))"

struct machine_writer {
    FILE *to;
    unsigned id, bus, bridge, nic;
};

static void write_set(FILE *to, unsigned first, unsigned n)
{
    char text[128];
    size_t len = 0;

    /* hwloc's form is words of 32 bits, the highest first */
    for (int word = (int)((first + n - 1) / 32); word >= 0; word--) {
        uint32_t bits = 0;
        for (unsigned i = 0; i < 32; i++) {
            unsigned cpu = (unsigned)word * 32 + i;
            bits |= cpu >= first && cpu < first + n ? 1u << i : 0;
        }
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s0x%08x", len ? "," : "", bits);
    }
    fprintf(to, " cpuset=\"%s\" complete_cpuset=\"%s\"", text, text);
}

static void write_device(struct machine_writer *w, char kind)
{
    static const struct {
        char kind;
        const char *type, *os; /* class, vendor, device; kinds of OS devices */
    } kinds[] = {
        {'G', "0302 [10de:2330]", ""},  {'A', "0380 [1002:7408]", ""}, {'a', "1200 [1002:74a1]", ""},
        {'I', "1200 [8086:0bd5]", ""},  {'i', "0300 [8086:4680]", ""}, {'V', "0300 [1a03:2000]", ""},
        {'M', "0207 [15b3:1021]", "rn"}, {'m', "0207 [15b3:1021]", "d"}, {'R', "0200 [15b3:1021]", "rn"}, {'E', "0200 [8086:1521]", "n"},
        {'e', "0200 [8086:1521]", ""},  {'S', "0200 [17db:0501]", "n"},
    };
    size_t i = 0;

    while (kinds[i].kind != kind)
        assert_true(++i < sizeof(kinds) / sizeof(*kinds));
    fprintf(w->to, "<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:%02x:00.0\" pci_type=\"%s "
            "[0000:0000] 00\" pci_link_speed=\"31.5\">", w->id++, w->bus++, kinds[i].type);
    for (const char *os = kinds[i].os; *os; os++) {
        if (*os == 'n')
            fprintf(w->to, "<object type=\"OSDev\" gp_index=\"%u\" name=\"net%u\" osdev_type=\"2\"/>", w->id++, w->nic);
        else
            fprintf(w->to, "<object type=\"OSDev\" gp_index=\"%u\" name=\"mlx5_%u\" osdev_type=\"3\">"
                    "<info name=\"Port1State\" value=\"%d\"/></object>", w->id++, w->nic, *os == 'r' ? 4 : 1);
    }
    w->nic += *kinds[i].os != '\0';
    fprintf(w->to, "</object>");
}

static void write_devices(struct machine_writer *w, const char *line)
{
    unsigned depth = 0;

    for (; *line; line++) {
        if (*line == '[')
            fprintf(w->to, "<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"0-1\" depth=\"0\" "
                    "bridge_pci=\"0000:[%02x-ff]\">", w->id++, w->bus++);
        else if (*line == '(')
            fprintf(w->to, "<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"1-1\" depth=\"%u\" "
                    "bridge_pci=\"0000:[%02x-ff]\" pci_busid=\"0000:%02x:01.0\" pci_type=\"0604 [8086:352a] "
                    "[0000:0000] 00\" pci_link_speed=\"31.5\">", w->id++, ++depth, w->bus, w->bus);
        else if (*line == ')' || *line == ']')
            fprintf(w->to, "</object>");
        else if (*line != ' ')
            write_device(w, *line);
        depth -= *line == ')';
        w->bus += *line == '(';
    }
}

/* A machine with NUMA nodes of some cores, so many of them a package, and a line of devices for each. Caller unlinks path. */
static void write_machine(char path[32], unsigned packages, unsigned numas, unsigned cores, const char *const *lines)
{
    struct machine_writer w = {.id = 1};
    unsigned all = numas * cores, each = numas / packages;
    int fd;

    strcpy(path, "/tmp/rk_machine.XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    w.to = fdopen(fd, "w");
    assert_non_null(w.to);
    fprintf(w.to, "<?xml version=\"1.0\"?><topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" "
            "gp_index=\"%u\"", w.id++);
    write_set(w.to, 0, all);
    fprintf(w.to, " nodeset=\"0x%x\" complete_nodeset=\"0x%x\">", (1u << numas) - 1, (1u << numas) - 1);
    for (unsigned node = 0; node < numas; node++) {
        unsigned first = node * cores, package = node / each;
        if (node % each == 0) {
            unsigned nodes = ((1u << each) - 1) << node;
            fprintf(w.to, "<object type=\"Package\" os_index=\"%u\" gp_index=\"%u\"", package, w.id++);
            write_set(w.to, first, each * cores);
            fprintf(w.to, " nodeset=\"0x%x\" complete_nodeset=\"0x%x\">", nodes, nodes);
        }
        fprintf(w.to, "<object type=\"Group\" gp_index=\"%u\" kind=\"1001\" subkind=\"0\"", w.id++);
        write_set(w.to, first, cores);
        fprintf(w.to, " nodeset=\"0x%x\" complete_nodeset=\"0x%x\">", 1u << node, 1u << node);
        fprintf(w.to, "<object type=\"NUMANode\" os_index=\"%u\" gp_index=\"%u\" local_memory=\"1048576\"", node, w.id++);
        write_set(w.to, first, cores);
        fprintf(w.to, " nodeset=\"0x%x\" complete_nodeset=\"0x%x\"/>", 1u << node, 1u << node);
        for (unsigned i = first; i < first + cores; i++) {
            for (int pu = 0; pu < 2; pu++) {
                fprintf(w.to, "<object type=\"%s\" os_index=\"%u\" gp_index=\"%u\"", pu ? "PU" : "Core", i, w.id++);
                write_set(w.to, i, 1);
                fprintf(w.to, " nodeset=\"0x%x\" complete_nodeset=\"0x%x\"%s>", 1u << node, 1u << node, pu ? "/" : "");
            }
            fprintf(w.to, "</object>");
        }
        write_devices(&w, lines[node]);
        fprintf(w.to, "</object>%s", node % each == each - 1 ? "</object>" : "");
    }
    fprintf(w.to, "</object></topology>\n");
    assert_int_equal(fclose(w.to), 0);
}

static void make_machine(struct rk_machine *m, unsigned packages, unsigned numas, unsigned cores, const char *const *lines)
{
    char path[32], err[256] = "";

    write_machine(path, packages, numas, cores, lines);
    if (rk_machine_load(path, m, err, sizeof(err)))
        fail_msg("%s", err);
    unlink(path);
}

static void recorded_machine(struct rk_machine *m, const char *name)
{
    const char *top = getenv("top_srcdir");
    char path[512], err[256] = "";

    snprintf(path, sizeof(path), "%s/tests/data/topologies/%s.xml", top ? top : ".", name);
    if (rk_machine_load(path, m, err, sizeof(err)))
        fail_msg("%s", err);
}

#endif
