import { readCpuInfo } from "./cpu-info.ts";
import type { Probe } from "./probe.ts";

// Vendor and product names in the firmware of virtual machines. The product of EC2 bare metal is "*.metal".
const virtualProducts =
  /\b(?:KVM|QEMU|VMware|VirtualBox|Xen|Bochs|BHYVE|Parallels|OpenStack|HVM domU|Google Compute Engine|Virtual Machine|Standard PC|Alibaba Cloud ECS|Firecracker|Apple Virtualization)\b/i;

/** Returns whether the machine is virtual. Undefined if nothing indicates it. */
export async function readVirtualization(probe: Probe): Promise<boolean | undefined> {
  const [cpu, vendor = "", product = "", deviceTree, hypervisor] = await Promise.all([
    readCpuInfo(probe),
    probe.text("/sys/class/dmi/id/sys_vendor"),
    probe.text("/sys/class/dmi/id/product_name"),
    probe.text("/proc/device-tree/hypervisor/compatible"),
    probe.text("/sys/hypervisor/type"),
  ]);
  const onX86 = cpu?.family !== undefined;
  if (onX86 && cpu.flags.includes("hypervisor")) return true;
  if (deviceTree !== undefined || hypervisor || isVirtualProduct(vendor, product)) return true;
  // Every x86 server hypervisor sets the flag, so its absence means bare metal.
  return onX86 || vendor || product ? false : undefined;
}

function isVirtualProduct(vendor: string, product: string): boolean {
  if (vendor === "Amazon EC2") return !product.endsWith(".metal");
  return virtualProducts.test(`${vendor} ${product}`);
}
