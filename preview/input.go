// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// Input is all that Of looks at. It writes to none of it.
type Input struct {
	// Now is the instant of the preview. Required.
	Now time.Time
	// Plan is the InstallPlan that would be approved. Required; of Hops only the namespace counts.
	Plan types.NamespacedName
	// Objects are what was observed, at least the plan. What is not among them does not exist, unless NotRead has its
	// kind.
	Objects []olmcore.Object
	// NotRead are kinds that could not be read, as people call them, sorted.
	NotRead []string
	// Options are those of the controllers that would carry the plan out. Of them Namespaces do not count, nor what has to
	// do with connections; Resolve and Fingerprint for Hops alone.
	Options controllers.Options
	// CustomResources is the judgement of custom resources by schemas that the plan changes: the answer to
	// Preview.SchemaChanges. Where it is not complete, nothing is refused on their behalf.
	CustomResources olmcore.Observed[installplan.ResourceVerdict]
}

func (in *Input) validate() error {
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.Plan.Namespace == "":
		return &olmcore.InputError{Field: "Plan.Namespace", Problem: "is empty"}
	}
	return in.Options.InstallPlan.Validate()
}
