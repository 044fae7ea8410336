// SPDX-License-Identifier: Apache-2.0

package csvtest

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// AsOLM is an object as OLM makes it: without what this library adds for its cleanup and for certificates that follow each
// other, and with the names that the API server completes.
func AsOLM(o olmcore.Object) olmcore.Object {
	o = o.DeepCopyObject().(olmcore.Object)
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	delete(labels, "olm.owner.uid")
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "olmcore/") })
	switch kind := olmcore.KeyOf(o).Kind; {
	case strings.HasSuffix(kind, "WebhookConfiguration"):
		o.SetName(labels["olm.webhook-description-generate-name"] + "-x7k2p")
	case kind == "RoleBinding" && o.GetNamespace() == "kube-system":
		labels = map[string]string{"olm.managed": "true"}
	case strings.HasPrefix(kind, "ClusterRole"):
		delete(labels, "olm.copiedFrom")
	case kind == "Secret":
		secret := o.(*corev1.Secret)
		maps.DeleteFunc(secret.Data, func(key string, _ []byte) bool {
			return !slices.Contains([]string{"tls.crt", "tls.key", "olmCAKey"}, key)
		})
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o
}
