import { expect, test } from "@playwright/test";
import { visible, visibleLines } from "../../src/ui/visible.ts";

test("invisible characters are escaped", () => {
  expect(visible("a\nb\tc\u0000\u001b[31m")).toBe("a\\nb\\tc\\u{0}\\u{1b}[31m");
  expect(visible("invoice\u202egnp.exe")).toBe("invoice\\u{202e}gnp.exe");
  expect(visible("ad\u200bmin\ufeff")).toBe("ad\\u{200b}min\\u{feff}");
});

test("invisible spaces are escaped", () => {
  expect(visible("  ")).toBe("\\u{20}\\u{20}");
  expect(visible(" a")).toBe("\\u{20}a");
  expect(visible("a ")).toBe("a\\u{20}");
  expect(visible("a  b")).toBe("a\\u{20}\\u{20}b");
  expect(visible("a b c")).toBe("a b c");
  for (const blank of ["a0", "2003", "3000", "2800", "3164", "115f", "1160", "ffa0", "34f", "fe0f"]) {
    expect(visible(`a${String.fromCodePoint(Number.parseInt(blank, 16))}b`)).toBe(`a\\u{${blank}}b`);
  }
});

test("visible text of every script stays unchanged", () => {
  for (const text of ["/api/search", "zażółć", "日本語", "العربية", "שלום", "👩‍💻".replace("\u200d", ""), '<b>"&\\']) {
    expect(visible(text)).toBe(text);
  }
});

test("line breaks of several lines are kept", () => {
  expect(visibleLines("one\r\ntwo\u202e\n")).toBe("one\\r\ntwo\\u{202e}\n");
});
