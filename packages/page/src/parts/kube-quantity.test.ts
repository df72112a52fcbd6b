import { describe, expect, it } from "vitest";
import { amountText, parseQuantity, quantityText } from "./kube-quantity.ts";

describe("quantities of Kubernetes", () => {
  it.each([
    ["250m", 0.25],
    ["40Gi", 40 * 2 ** 30],
    ["1e3", 1_000],
    ["1E", 1e18],
    ["2.5k", 2_500],
    ["0", 0],
    [".5", 0.5],
  ])("%s is %d", (text, value) => {
    expect(parseQuantity(text)).toBe(value);
  });

  it("takes nothing else for one", () => {
    for (const text of ["", "Gi", "1 Gi", "1gi", "0x10", "1e9999", null, {}, Number.NaN])
      expect(parseQuantity(text)).toBeUndefined();
  });

  it("shows memory in bytes and anything else as a number", () => {
    expect(amountText("memory", 3 * 2 ** 30)).toBe("3 GiB");
    expect(amountText("hugepages-2Mi", 2 ** 21)).toBe("2 MiB");
    expect(amountText("cpu", 2.5)).toBe("2.5");
    expect(amountText("cpu", 127.9)).toBe("127.9");
    expect(amountText("cpu", 0.1 + 0.2)).toBe("0.3");
    expect(amountText("example.com/widgets", 1_234_567)).toBe("1234567");
  });

  it.each([
    ["memory", "24684096Ki", "23.5 GiB"],
    ["memory", "25276514304", "23.5 GiB"],
    ["resource.katalyst.kubewharf.io/reclaimed_memory", "1073741824", "1 GiB"],
    ["example.com/buffer", "512Mi", "512 MiB"],
    ["cpu", "1500m", "1.5"],
    ["example.com/widgets", 14, "14"],
    ["example.com/widgets", "12345", "12345"],
    ["pods", "1k", "1000"],
    ["cpu", "127500m", "127.5"],
    ["cpu", "1500u", "0.0015"],
    ["memory", "much", undefined],
  ])("%s %s is read as %s", (resource, value, text) => {
    expect(quantityText(resource, value)).toBe(text);
  });
});
