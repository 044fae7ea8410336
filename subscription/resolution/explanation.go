// SPDX-License-Identifier: Apache-2.0

package resolution

import "github.com/olmcore/olm/subscription/resolution/internal/explain"

// Explain says why a bundle, named by its ClusterServiceVersion, is or is not chosen for a Subscription; an empty
// subscription asks about the whole namespace. It resolves as Resolve does and then asks what stands in the way.
func Explain(in Input, subscription, bundle string) Explanation {
	in.Policy.OmitHeldBack = true
	s, res := resolve(&in)
	d := explain.Decided{Operators: res.Operators, Targets: res.Targets, Failure: res.Failure, Cores: res.Cores}
	return explain.Of(&s.View, &d, subscription, bundle, &s.limits.heldBack)
}
