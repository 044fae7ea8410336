// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/sweep"
	. "github.com/olmcore/olm/internal/plantest"
	_ "github.com/olmcore/olm/internal/seeded"
)

func bornAgo(d time.Duration) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.CreationTimestamp = *Ago(d) }
}

func gone(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(time.Minute) }

func going(in sweep.Input) sweep.Input {
	in.Namespaces.Items[0].DeletionTimestamp = Ago(time.Minute)
	return in
}

func writtenAgo(d time.Duration) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Status.LastUpdated = *Ago(d) }
}
