// SPDX-License-Identifier: Apache-2.0

// Package create creates the InstallPlan of a resolution.
//
// An existing plan is found by the hash of its content. [Plan] creates the plan of a resolution, or reuses the plan
// with the same content. The steps of a plan are written only after its Subscriptions reference it:
//
//	resolution --> Lookups, until package unpack has unpacked every bundle image
//	           --> InstallPlan without status --> the Subscriptions reference it --> its steps
//
// Then package installplan installs the steps.
package create
