// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"github.com/olmcore/olm/internal/sample"
)

const (
	ns       = sample.Namespace
	labelKey = sample.LabelKey
)

var (
	epoch, now, second          = sample.Epoch, sample.Now, sample.Second
	secondp, newSub, newPlan    = sample.Secondp, sample.Sub, sample.Plan
	newCSV, meta, follows       = sample.CSV, sample.Meta, sample.Follows
	installed, pending, started = sample.Installed, sample.Pending, sample.Started
	done, inputOf, answered     = sample.Done, sample.Input, sample.Answered
	carryOut, vault, reconcile  = sample.CarryOut, sample.Vault, sample.Reconcile
	reasons, statusOf, words    = sample.Reasons, sample.StatusOf, sample.Words
)
