// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"github.com/olmcore/olm/subscription/internal/sample"
)

const (
	ns       = sample.Namespace
	labelKey = sample.LabelKey
)

var (
	epoch         = sample.Epoch
	now           = sample.Now
	secondp       = sample.Secondp
	newSub        = sample.Sub
	newPlan       = sample.Plan
	newCSV        = sample.CSV
	follows       = sample.Follows
	installed     = sample.Installed
	pending       = sample.Pending
	withCondition = sample.WithCondition
	manual        = sample.Manual
	started       = sample.Started
	done          = sample.Done
	failed        = sample.Failed
	inputOf       = sample.Input
	answered      = sample.Answered
	carryOut      = sample.CarryOut
	vault         = sample.Vault
)
