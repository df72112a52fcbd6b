export { parseByteSize, roundedBytes } from "./byte-size.ts";
export { formatDuration, parseDuration } from "./duration.ts";
export { plainJson, plainLines, plainText, plainTexts } from "./plain-text.ts";
export { plainYaml } from "./plain-yaml.ts";
export {
  compareQuantities,
  formatQuantity,
  isQuantity,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  quantityOf,
  wholeUnits,
} from "./quantity.ts";
export { quote } from "./quote.ts";
