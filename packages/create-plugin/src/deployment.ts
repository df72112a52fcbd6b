import type { Choices } from "./arguments.ts";
import { scriptsOf } from "./manifest.ts";
import type { Language } from "./templates.ts";

// The actions of .github/workflows/ci.yml.
const checkout = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1";
const setupNode = "actions/setup-node@820762786026740c76f36085b0efc47a31fe5020 # v7.0.0";
const setupGo = "actions/setup-go@b7ad1dad31e06c5925ef5d2fc7ad053ef454303e # v7.0.0";

/** Returns the files with which the plugin runs on the nodes of a cluster: path in the project to text. */
export function deploymentOf(choices: Choices): Record<string, string> {
  return {
    Dockerfile: dockerfileOf(choices),
    ".dockerignore": "*\n!package*.json\n!*.ts\n!*.go\n!go.*\n!sdk-*\n!*.py\n!requirements.txt\n",
    "deploy/daemonset.yaml": daemonSetOf(choices),
    ".github/workflows/ci.yml": workflowOf(choices),
  };
}

/** Returns the image's name in the files of the project. */
export function imageOf({ name }: Choices): string {
  return `${name}:0.1.0`;
}

function dockerfileOf({ language }: Choices): string {
  const lines: Record<Language, readonly string[]> = {
    typescript: [
      "FROM node:24-trixie-slim AS build",
      "WORKDIR /plugin",
      "COPY package*.json ./",
      "RUN npm ci --omit=dev --no-audit --no-fund",
      "",
      "FROM node:24-trixie-slim",
      "WORKDIR /plugin",
      "COPY --from=build /plugin/node_modules node_modules",
      "COPY package.json *.ts ./",
      'ENTRYPOINT ["node", "main.ts"]',
    ],
    go: [
      "FROM golang:1.25 AS build",
      "WORKDIR /src",
      "COPY . .",
      "RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /plugin .",
      "",
      "FROM scratch",
      "COPY --from=build /plugin /plugin",
      'ENTRYPOINT ["/plugin"]',
    ],
    python: [
      "FROM python:3.13-slim",
      "WORKDIR /plugin",
      "COPY requirements.txt ./",
      "COPY sdk-python sdk-python",
      "RUN pip install --no-cache-dir -r requirements.txt",
      "COPY main.py ./",
      'ENTRYPOINT ["python", "main.py"]',
    ],
  };
  return `${lines[language].join("\n")}\n`;
}

/** Memory that is requested for a plugin, and its limit. With Node, the samples use 115 MB. */
const memory: Readonly<Record<Language, readonly [request: string, limit: string]>> = {
  typescript: ["128Mi", "256Mi"],
  go: ["32Mi", "128Mi"],
  python: ["64Mi", "192Mi"],
};

function daemonSetOf(choices: Choices): string {
  const { language } = choices;
  // Without quotes, YAML would read a name such as 2024 or true as a number or a boolean.
  const name = JSON.stringify(choices.name);
  const [request, limit] = memory[language];
  return `# The plugin on every node. It calls no API server: its account has no permissions, and no token is mounted.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: ${name}
automountServiceAccountToken: false
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: ${name}
  labels:
    app.kubernetes.io/name: ${name}
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: ${name}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      # Each instance has its own socket: the agent registers the new one before the old one ends.
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/name: ${name}
    spec:
      serviceAccountName: ${name}
      automountServiceAccountToken: false
      # As the agent: it is needed most on a node under pressure.
      priorityClassName: system-node-critical
      nodeSelector:
        kubernetes.io/os: linux
      tolerations:
        - operator: Exists
      terminationGracePeriodSeconds: 10
      containers:
        - name: plugin
          image: ${imageOf(choices)}
          securityContext:
            # The agent accepts sockets of root and of the users in plugins.allowedUids.
            runAsUser: 0
            runAsGroup: 0
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
            seccompProfile:
              type: RuntimeDefault
          resources:
            requests:
              cpu: 10m
              memory: ${request}
            limits:
              memory: ${limit}
          volumeMounts:
            - name: plugins
              mountPath: /var/lib/nodekeeper/plugins_registry
      volumes:
        - name: plugins
          hostPath:
            path: /var/lib/nodekeeper/plugins_registry
            # Made by the agent's pod. The kubelet starts this one once it exists.
            type: Directory
`;
}

function workflowOf(choices: Choices): string {
  const { language } = choices;
  const steps = [
    `      - uses: ${checkout}`,
    `      - uses: ${setupNode}`,
    "        with:",
    "          node-version: 24",
    ...(language === "go"
      ? [`      - uses: ${setupGo}`, "        with:", "          go-version-file: go.mod"]
      : []),
    "      - run: npm ci",
    ...(scriptsOf(choices).build ? ["      - run: npm run build"] : []),
    ...(scriptsOf(choices).check ? ["      - run: npm run check"] : []),
    "      - run: npm test",
    `      - run: docker build -t ${imageOf(choices)} .`,
  ];
  return `name: ci
on:
  pull_request:
  push:
    branches: [main]
permissions:
  contents: read
jobs:
  test:
    runs-on: ubuntu-24.04
    steps:
${steps.join("\n")}
`;
}
