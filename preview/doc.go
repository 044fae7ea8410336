// SPDX-License-Identifier: Apache-2.0

// Package preview reports what approving an InstallPlan would do, before it is approved: which objects are created,
// changed and deleted, which permissions the operator gets, what happens to CustomResourceDefinitions and their custom
// resources, which Deployments restart, what blocks the plan, and whether it can be rolled back.
//
// [Of] simulates the observed cluster in memory, with the controllers of package controllers. It runs the simulation
// before and after the approval, and compares the two states. No rule is written a second time, so the preview reports
// what the library does. Of writes nothing, reads no clock, and returns the same Preview for the same Input. [Gather]
// reads the Input. [Run] does both, and has custom resources checked:
//
//	p, err := preview.Run(ctx, reader, types.NamespacedName{Namespace: "ops", Name: "install-abcde"}, time.Now(), options)
//	if len(p.Blocked) == 0 && len(p.Permissions.Added) == 0 { ... }
//
// The simulation assumes that Nodes have what Pods need, images can be pulled and Deployments become available, other
// controllers and users change nothing, admission webhooks allow every request, and the ServiceAccount of an
// OperatorGroup may do what the plan does.
package preview
