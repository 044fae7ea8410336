// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// The defaults in the schemas of OLM's own CRDs, as "path value". A test compares them with the CRDs, which take too
// long to read for each program that uses this package.
var (
	envDefaults = []string{
		`env[].valueFrom.configMapKeyRef.name ""`, `env[].valueFrom.secretKeyRef.name ""`, `env[].valueFrom.fileKeyRef.optional false`,
		`envFrom[].configMapRef.name ""`, `envFrom[].secretRef.name ""`,
	}
	containerDefaults = slices.Concat(envDefaults, []string{
		`ports[].protocol "TCP"`, `livenessProbe.grpc.service ""`, `readinessProbe.grpc.service ""`, `startupProbe.grpc.service ""`,
	})
	volumeDefaults = below("volumes[]", []string{
		`configMap.name ""`, `projected.sources[].configMap.name ""`, `projected.sources[].secret.name ""`, `csi.nodePublishSecretRef.name ""`,
		`azureDisk.fsType "ext4"`, `azureDisk.readOnly false`, `cephfs.secretRef.name ""`, `cinder.secretRef.name ""`, `flexVolume.secretRef.name ""`,
		`iscsi.iscsiInterface "default"`, `iscsi.secretRef.name ""`, `rbd.keyring "/etc/ceph/keyring"`, `rbd.pool "rbd"`, `rbd.user "admin"`,
		`rbd.secretRef.name ""`, `scaleIO.fsType "xfs"`, `scaleIO.storageMode "ThinProvisioned"`, `scaleIO.secretRef.name ""`, `storageos.secretRef.name ""`,
	})
	podDefaults = slices.Concat(below("containers[]", containerDefaults), below("initContainers[]", containerDefaults),
		below("ephemeralContainers[]", containerDefaults), volumeDefaults, []string{`hostAliases[].ip ""`, `imagePullSecrets[].name ""`})

	operatorDefaults = map[schema.GroupVersionKind]*Schema{
		operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind): schemaAt(
			[]string{`spec {"upgradeStrategy":"Default"}`, `spec.upgradeStrategy "Default"`}),
		v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind): schemaAt(
			below("spec.config", slices.Concat(envDefaults, volumeDefaults))),
		v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind): schemaAt(slices.Concat(
			below("spec.install.spec.deployments[].spec.template.spec", podDefaults), []string{`spec.webhookdefinitions[].containerPort 443`})),
	}
)

func below(path string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = path + "." + line
	}
	return out
}

// schemaAt reads "path value" lines, where "[]" stands for the items of a list.
func schemaAt(lines []string) *Schema {
	root := &Schema{}
	for _, line := range lines {
		path, value, _ := strings.Cut(line, " ")
		at := root
		for name := range strings.SplitSeq(path, ".") {
			name, isList := strings.CutSuffix(name, "[]")
			if at.properties == nil {
				at.properties = map[string]*Schema{}
			}
			if at.properties[name] == nil {
				at.properties[name] = &Schema{}
			}
			if at = at.properties[name]; isList {
				if at.items == nil {
					at.items = &Schema{}
				}
				at = at.items
			}
		}
		if err := json.Unmarshal([]byte(value), &at.value); err != nil {
			panic(err) // the lines are constants above
		}
	}
	return root
}

// OLM returns the defaults in the schema of a kind of OLM, or nil for every other kind.
func OLM(gvk schema.GroupVersionKind) *Schema { return operatorDefaults[gvk] }
