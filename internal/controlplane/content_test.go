// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// content is what the catalog olm/community holds: packages that a story publishes.
var content published

type published struct {
	mu       sync.Mutex
	catalogs controllers.Catalogs
}

func (p *published) resolve(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.catalogs.Resolve(ctx, r, request)
}

// texts are the bundles of packages that are not like alpha and beta.
var texts = map[string]string{"gamma": gammaText, "delta": deltaText}

// publish replaces the content by packages with the versions 1 to n each.
func publish(t testing.TB, versions map[string]int) {
	var packages []resolution.Package
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		channel := resolution.Channel{Name: "stable"}
		p := resolution.Package{Name: name, DefaultChannel: "stable"}
		for v := 1; v <= versions[name]; v++ {
			entry := resolution.ChannelEntry{Name: csvName(name, v)}
			if v > 1 {
				entry.Replaces = csvName(name, v-1)
			}
			channel.Entries = append(channel.Entries, entry)
			value, err := json.Marshal(map[string]string{"packageName": name, "version": fmt.Sprintf("%d.0.0", v)})
			require.NoError(t, err)
			p.Bundles = append(p.Bundles, resolution.Bundle{Name: entry.Name, Bundle: olmcore.Bundle{
				Objects: bundle(t, name, v), Properties: []olmcore.Property{{Type: "olm.package", Value: value}},
			}})
		}
		p.Channels = []resolution.Channel{channel}
		packages = append(packages, p)
	}
	catalog, problems := resolution.Build(packages)
	require.Empty(t, problems)
	content.mu.Lock()
	defer content.mu.Unlock()
	content.catalogs = controllers.Catalogs{GlobalNamespace: "olm",
		Content: map[types.NamespacedName]*resolution.Catalog{{Namespace: "olm", Name: "community"}: catalog}}
}

func csvName(pkg string, version int) string { return fmt.Sprintf("%s.v%d.0.0", pkg, version) }

const bundleText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: PKG.vVERSION.0.0}
spec:
  displayName: PKG
  version: VERSION.0.0
  REPLACES
  minKubeVersion: 1.30.0
  cleanup: {enabled: true}
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: false}
  customresourcedefinitions:
    owned: [{name: PKGs.example.com, kind: Kind-PKG, version: v1}]
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: PKG
        rules: [{apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}]
      permissions:
      - serviceAccountName: PKG
        rules: [{apiGroups: [example.com], resources: [PKGs], verbs: ["*"]}]
      deployments:
      - name: PKG
        spec:
          replicas: 1
          selector: {matchLabels: {app: PKG}}
          template:
            metadata: {labels: {app: PKG}}
            spec:
              serviceAccountName: PKG
              initContainers:
              - {name: prepare, image: "registry.example.com/PKG:vVERSION", resources: {limits: {memory: 100Mi}}}
              containers:
              - name: operator
                image: "registry.example.com/PKG:vVERSION"
                ports: [{containerPort: 8080, name: http}]
                env:
                - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
                - {name: LEVEL, valueFrom: {configMapKeyRef: {name: PKG, key: level, optional: true}}}
                resources: {requests: {cpu: 1000m, memory: "104857600"}, limits: {memory: 0.5Gi}}
                readinessProbe: {httpGet: {port: http}}
                livenessProbe: {grpc: {port: 9000}}
                startupProbe: {tcpSocket: {port: 8080}}
                volumeMounts: [{name: config, mountPath: /config}, {name: all, mountPath: /all}, {name: host, mountPath: /host}]
              volumes:
              - {name: config, configMap: {name: PKG}}
              - {name: certificate, secret: {secretName: PKG, optional: true}}
              - {name: scratch, emptyDir: {}}
              - {name: host, hostPath: {path: /etc}}
              - {name: all, projected: {sources: [{configMap: {name: PKG}}, {serviceAccountToken: {path: token}}]}}
              - {name: labels, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PKGs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Kind-PKG, listKind: Kind-PKGList, plural: PKGs, singular: PKG}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, level: {type: string, default: low}}}}}}
    subresources: {status: {}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: PKG}
data: {level: high}
---
apiVersion: v1
kind: Service
metadata: {name: PKG}
spec:
  selector: {app: PKG}
  ports: [{port: 8080, targetPort: http}]
---
apiVersion: v1
kind: Secret
metadata: {name: PKG}
stringData: {password: secret}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: PKG-viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: PKG}]
`

func bundle(t testing.TB, pkg string, version int) []olmcore.Object {
	replaces := ""
	if version > 1 {
		replaces = "replaces: " + csvName(pkg, version-1)
	}
	text := strings.NewReplacer("Kind-PKG", strings.ToUpper(pkg[:1])+pkg[1:], "PKG", pkg, "VERSION", fmt.Sprint(version), "REPLACES", replaces).Replace(cmp.Or(texts[pkg], bundleText))
	var objects []olmcore.Object
	for document := range strings.SplitSeq(text, "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		o, err := decode.Decode(data)
		require.NoError(t, err)
		objects = append(objects, o)
	}
	return objects
}
