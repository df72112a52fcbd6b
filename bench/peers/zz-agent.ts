const root=process.argv[2]!;
const m=await import(`${root}/bench/peers/agent-measurements.ts`);
const other=m.katalystAgent ?? m.katalyst ?? Object.values(m).find((x:any)=>x?.name==="katalyst");
for (let i=0;i<2;i++) console.log(root, JSON.stringify(await m.measureAgent(other)({side:"agent",peer:"",quick:true,alone:(f:any)=>f(),plugins:""})));
process.exit(0);
