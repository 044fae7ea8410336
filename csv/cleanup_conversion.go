// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/olmcore"
)

// conversion takes our service out of the CRDs: a conversion webhook that nobody
// answers makes every read of the custom resources fail.
func (k *cleaner) conversion() {
	if len(k.c.Spec.WebhookDefinitions) == 0 {
		return
	}
	if !k.in.CustomResourceDefinitions.Complete {
		k.missing("CustomResourceDefinitions")
		return
	}
	definitions := slices.SortedFunc(slices.Values(k.in.CustomResourceDefinitions.Items), func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Name, b.Name)
	})
	for _, crd := range definitions {
		if crd.DeletionTimestamp != nil || !describes(k.c.Spec.CustomResourceDefinitions.Owned, crd.Name) || !k.isConvertedByUs(crd) {
			continue
		}
		if !cameWith(k.c, crd) {
			k.skip(olmcore.RefOf(crd), "its conversion webhook stays: "+notInstalledByThisCSV)
			continue
		}
		if !k.in.Deletion.Peers.Complete {
			k.missing("ClusterServiceVersions of all namespaces")
			return
		}
		if k.isConversionClaimed(crd) {
			continue
		}
		after := crd.DeepCopy()
		after.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		k.try(olmcore.UpdateOf(crd, after, olmcore.Cause{
			Reason: ReasonCleanup, Message: "the conversion webhook of CRD " + crd.Name + " goes with ClusterServiceVersion " + k.c.Name,
		}), pendingObject{ref: olmcore.RefOf(crd), why: "resetting conversion"}, 0)
	}
}

func (k *cleaner) isConvertedByUs(crd *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || conversion.Webhook.ClientConfig.Service == nil {
		return false
	}
	service := conversion.Webhook.ClientConfig.Service
	if service.Namespace != k.c.Namespace {
		return false
	}
	specs := k.c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		if service.Name == serviceName(specs[i].Name) {
			return true
		}
	}
	return false
}

// serviceName is the Service of a Deployment that serves webhooks.
func serviceName(deployment string) string {
	return strings.ReplaceAll(deployment, ".", "-") + "-service"
}

// isConversionClaimed reports whether a live version of the namespace has a webhook for
// a CRD. Those of other namespaces may say so, but the Service is none of theirs.
func (k *cleaner) isConversionClaimed(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, p := range k.peers() {
		if p.Namespace != k.c.Namespace {
			continue
		}
		for i := range p.Spec.WebhookDefinitions {
			if slices.Contains(p.Spec.WebhookDefinitions[i].ConversionCRDs, crd.Name) {
				return true
			}
		}
	}
	return false
}
