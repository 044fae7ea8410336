// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"github.com/olmcore/olm/internal/sample"
)

const (
	ns       = sample.Namespace
	labelKey = sample.LabelKey
)

var (
	epoch, now, secondp            = sample.Epoch, sample.Now, sample.Secondp
	newSub, newPlan, newCSV        = sample.Sub, sample.Plan, sample.CSV
	follows, installed, pending    = sample.Follows, sample.Installed, sample.Pending
	withCondition, manual, started = sample.WithCondition, sample.Manual, sample.Started
	done, failed, inputOf          = sample.Done, sample.Failed, sample.Input
	answered, carryOut, vault      = sample.Answered, sample.CarryOut, sample.Vault
)
