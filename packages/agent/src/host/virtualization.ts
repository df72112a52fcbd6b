import { readCpuInfo } from "./cpu-info.ts";
import type { Probe } from "./probe.ts";

export interface Virtualization {
  virtualMachine: boolean;
  /** Source of the result: "cpu flag", "dmi", "device tree" or "hypervisor directory". */
  evidence: string;
  /** Hypervisor or cloud, if the machine reports it: "KVM", "Amazon EC2". */
  product?: string;
}

// Vendor and product names in the firmware of virtual machines. The product of EC2 bare metal is "*.metal".
const virtualProducts =
  /\b(?:KVM|QEMU|VMware|VirtualBox|Xen|Bochs|BHYVE|Parallels|OpenStack|HVM domU|Google Compute Engine|Virtual Machine|Standard PC|Alibaba Cloud ECS|Firecracker|Apple Virtualization)\b/i;

/** Detects whether the machine is virtual. Undefined if nothing indicates it. */
export async function readVirtualization(probe: Probe): Promise<Virtualization | undefined> {
  const [cpu, vendor, product, deviceTree, hypervisor] = await Promise.all([
    readCpuInfo(probe),
    probe.text("/sys/class/dmi/id/sys_vendor"),
    probe.text("/sys/class/dmi/id/product_name"),
    probe.text("/proc/device-tree/hypervisor/compatible"),
    probe.text("/sys/hypervisor/type"),
  ]);
  const dmi = [vendor, product].filter(Boolean).join(" ");
  const named = dmi ? { product: dmi } : {};
  const onX86 = cpu?.family !== undefined;

  if (onX86 && cpu.flags.includes("hypervisor")) {
    return { virtualMachine: true, evidence: "cpu flag", ...named };
  }
  if (deviceTree !== undefined) {
    return { virtualMachine: true, evidence: "device tree", product: deviceTree.split("\0")[0]! };
  }
  if (dmi && isVirtualProduct(vendor ?? "", product ?? "")) {
    return { virtualMachine: true, evidence: "dmi", ...named };
  }
  if (hypervisor) return { virtualMachine: true, evidence: "hypervisor directory", product: hypervisor };
  // Every x86 server hypervisor sets the flag, so its absence means bare metal.
  if (onX86) return { virtualMachine: false, evidence: "cpu flag", ...named };
  return dmi ? { virtualMachine: false, evidence: "dmi", ...named } : undefined;
}

function isVirtualProduct(vendor: string, product: string): boolean {
  if (vendor === "Amazon EC2") return !product.endsWith(".metal");
  return virtualProducts.test(`${vendor} ${product}`);
}
