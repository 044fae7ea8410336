// SPDX-License-Identifier: Apache-2.0

// Package stage says what the observations prove of the InstallPlan that one
// Subscription refers to: its listed version, the versions that a watch delivered
// ([Window]), what is remembered ([History]) and what the conditions of the
// Subscription show ([Shown]).
//
// [InstallPlans.Look] answers which version of the plan counts and in which stage it is,
// [InstallPlans.Publish] which stage the conditions show, and [InstallPlans.Report] which
// transitions led there. Each takes the memory as it is and returns it as it will be.
package stage
