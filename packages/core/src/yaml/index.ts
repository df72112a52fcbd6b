// User-written YAML files. Every value keeps its position, so that problems name the file, line and column.
export { describeAt, type Place, parseYaml, YamlError, type YamlFields, YamlValue } from "./yaml-value.ts";
