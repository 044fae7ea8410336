// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"github.com/olmcore/olm/internal/sample"
)

var (
	epoch, now, second             = sample.Epoch, sample.Now, sample.Second
	secondp, newSub, newPlan       = sample.Secondp, sample.Sub, sample.Plan
	newCSV, newCatalog, meta       = sample.CSV, sample.Catalog, sample.Meta
	follows, installed, pending    = sample.Follows, sample.Installed, sample.Pending
	withCondition, manual, started = sample.WithCondition, sample.Manual, sample.Started
	done, failed, installedIs      = sample.Done, sample.Failed, sample.InstalledIs
	inputOf, carryOut, reconcile   = sample.Input, sample.CarryOut, sample.Reconcile
	reasons, healthOf, lookup      = sample.Reasons, sample.HealthOf, sample.Lookup
	empty, leaving                 = sample.Empty, sample.Leaving
)
