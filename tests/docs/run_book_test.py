"""Tests of run_book.py: that it finds errors."""

import unittest

import run_book

TRUE = "/bin/true"


def page(*lines):
    return "\n".join(lines)


class Blocks(unittest.TestCase):
    def test_have_their_kind_line_and_status(self):
        text = page("# Title", "```sh", "ls", "```", "<!-- exit 3 -->", "```sh", "false", "```",
                    "<!-- exit 0 or 1 -->", "```sh", "true", "```", "```text", "x", "```")
        self.assertEqual([(b.line, b.kind, b.text, b.statuses) for b in run_book.blocks_of("p", text)],
                         [(2, "sh", "ls", (0,)), (6, "sh", "false", (3,)), (10, "sh", "true", (0, 1)),
                          (13, "text", "x", (0,))])

    def test_must_be_closed(self):
        with self.assertRaises(ValueError):
            run_book.blocks_of("p", "```sh\nls")


class Output(unittest.TestCase):
    def test_has_the_shown_lines_in_order(self):
        self.assertIsNone(run_book.first_missing("a  b\nc", "a b\nc\nd", False))
        self.assertIsNone(run_book.first_missing("b\n…\nd", "a\nb\nc\nd", False))
        self.assertIsNone(run_book.first_missing("took…", "took 3 s", False))
        self.assertEqual(run_book.first_missing("c\na", "a\nb\nc", False), "a")
        self.assertEqual(run_book.first_missing("a\nc", "a\nb\nc", False), "c")
        self.assertEqual(run_book.first_missing("e", "a", False), "e")

    def test_may_have_other_figures_only_if_they_are_masked(self):
        self.assertIsNone(run_book.first_missing("step 1.5 s, 12 %", "step 900 ms, 8.1 %", True))
        self.assertEqual(run_book.first_missing("step 1.5 s", "step 2 s", False), "step 1.5 s")
        self.assertEqual(run_book.first_missing("step 1.5 s", "period 1.5 s", True), "step 1.5 s")


class Pages(unittest.TestCase):
    def errors_of(self, *lines):
        return run_book.run_page("p.md", page(*lines), TRUE)

    def test_run_their_blocks_in_one_folder(self):
        self.assertEqual(self.errors_of("```sh", "echo x > f; meshwright", "```", "```sh", "cat f", "```",
                                        "```text", "x", "```"), (2, []))

    def test_report_a_wrong_status_and_a_wrong_output(self):
        count, errors = self.errors_of("```sh", "false", "```", "<!-- exit 1 -->", "```sh", "false", "```",
                                       "```sh", "echo a", "```", "```text", "b", "```")
        self.assertEqual(count, 3)
        self.assertEqual([error.split(":")[1] for error in errors], ["1", "11"])

    def test_stop_a_block_at_its_first_error(self):
        _, errors = self.errors_of("```sh", "false", "true", "```")
        self.assertEqual(len(errors), 1)


if __name__ == "__main__":
    unittest.main()
