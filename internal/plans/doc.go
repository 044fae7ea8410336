// SPDX-License-Identifier: Apache-2.0

// Package plans contains what the packages subscription and installplan both derive from InstallPlans and the
// versions that they install. They do not import each other.
package plans
