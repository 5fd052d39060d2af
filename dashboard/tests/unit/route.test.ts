import { expect, test } from "@playwright/test";
import { hrefOf, parseRoute } from "../../src/route.ts";

test("an address has a view and parameters", () => {
  const { view, params } = parseRoute("#/rules?rule=3&plan=a%26b");
  expect(view).toBe("rules");
  expect(params.get("rule")).toBe("3");
  expect(params.get("plan")).toBe("a&b");
});

test("what follows a second question mark is part of the value", () => {
  const { view, params } = parseRoute("#/explain?endpoint=/a?b&user_id=42");
  expect(view).toBe("explain");
  expect([...params]).toEqual([
    ["endpoint", "/a?b"],
    ["user_id", "42"],
  ]);
  expect([...parseRoute("#/rules").params]).toEqual([]);
  expect([...parseRoute("#/rules?").params]).toEqual([]);
});

test("an unknown view is the playground", () => {
  for (const hash of ["", "#", "#/", "#/nothing", "#main"]) expect(parseRoute(hash).view).toBe("playground");
});

test("addresses are parsed as they were written", () => {
  const href = hrefOf("violations", { user_id: '<img src=x onerror="x">', rule_id: 5, endpoint: undefined, ip: "" });
  const { view, params } = parseRoute(href);
  expect(view).toBe("violations");
  expect([...params]).toEqual([
    ["user_id", '<img src=x onerror="x">'],
    ["rule_id", "5"],
  ]);
});
