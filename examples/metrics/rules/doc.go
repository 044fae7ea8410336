// SPDX-License-Identifier: Apache-2.0

// Package rules tests ../alerts.yaml and ../dashboard.json with Prometheus's own parser and engine. It is a module of
// its own because these take longer to build than all else of ../.
package rules
