// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// notInstalledByThisCSV is why a CRD that the ClusterServiceVersion merely names is left
// alone: who may write one may name any.
const notInstalledByThisCSV = "no InstallPlan recorded on the CRD that it came with this ClusterServiceVersion"

// findConversions returns the CRDs that are converted by a Service of the operator: a
// conversion webhook that does not answer makes every read of the custom resources fail.
func findConversions(f *facts) (all found) {
	if len(f.c.Spec.WebhookDefinitions) == 0 {
		return all
	}
	if !f.in.CustomResourceDefinitions.Complete {
		all.unread = append(all.unread, "CustomResourceDefinitions")
		return all
	}
	crds := slices.SortedFunc(slices.Values(f.in.CustomResourceDefinitions.Items), func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Name, b.Name)
	})
	ours := owned.OwnedCRDs(f.c)
	for _, crd := range crds {
		switch {
		case crd.DeletionTimestamp != nil || !ours.Has(crd.Name) || !isConvertedBy(f.c, crd):
		case !owned.CameWith(f.c, crd):
			all.skipped = append(all.skipped, skip(crd, "its conversion webhook stays: "+notInstalledByThisCSV))
		case !f.in.Deletion.Peers.Complete:
			all.unread = []string{"ClusterServiceVersions of all namespaces"}
		case f.hasNeighbour(func(p *owned.CSV) bool { return converts(p, crd.Name) }):
		default:
			after := crd.DeepCopy()
			after.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			all.targets = append(all.targets, target{
				ref: olmcore.RefOf(crd), why: "resetting conversion",
				write: olmcore.UpdateOf(crd, after, olmcore.Cause{
					Reason: ReasonCleanup, Message: "the conversion webhook of CRD " + crd.Name + " goes with ClusterServiceVersion " + f.c.Name,
				}),
			})
		}
	}
	return all
}

// isConvertedBy reports whether a CRD is converted by the Service of a Deployment of c.
func isConvertedBy(c *owned.CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || conversion.Webhook.ClientConfig.Service == nil {
		return false
	}
	service := conversion.Webhook.ClientConfig.Service
	return service.Namespace == c.Namespace && slices.ContainsFunc(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(d v1alpha1.StrategyDeploymentSpec) bool {
		return service.Name == serviceName(d.Name)
	})
}

// converts reports whether c has a conversion webhook for a CRD.
func converts(c *owned.CSV, crd string) bool {
	return slices.ContainsFunc(c.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool { return slices.Contains(w.ConversionCRDs, crd) })
}
