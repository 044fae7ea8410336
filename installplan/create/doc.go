// SPDX-License-Identifier: Apache-2.0

// Package create makes the InstallPlan of a resolution.
//
// A plan is found again by the hash of its content: [Plan] makes the one that is needed or joins the one that exists.
// It comes in two rounds, so that the steps of a plan are written once its Subscriptions refer to it:
//
//	resolution --> Lookups, until package unpack has unpacked every bundle image
//	           --> InstallPlan without status --> the Subscriptions refer to it --> its steps
//
// From then on package installplan runs it.
package create
