// SPDX-License-Identifier: Apache-2.0

// Package operators has the bundles of the operators that the random worlds of tests install.
package operators

import (
	"fmt"
	"strings"
	"sync"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Name returns the name of a version, such as alpha.v1.0.0.
func Name(pkg string, version int) string { return fmt.Sprintf("%s.v%d.0.0", pkg, version) }

// kept are the versions whose manifests are made once: those that the worlds publish.
const kept = 12

var bundles = sync.OnceValue(func() map[string][]olmcore.Object {
	all := map[string][]olmcore.Object{}
	for _, pkg := range []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "helm"} {
		for version := 1; version <= kept; version++ {
			all[Name(pkg, version)] = read(pkg, version)
		}
	}
	return all
})

// Bundle returns the manifests of a version of any package, its ClusterServiceVersion first. They are shared, and must
// not be changed. The package delta serves webhooks, epsilon conversions and an API, zeta a webhook for some
// namespaces, gamma an API; all others have a Deployment alone.
func Bundle(pkg string, version int) []olmcore.Object {
	if objects := bundles()[Name(pkg, version)]; objects != nil {
		return objects
	}
	return read(pkg, version)
}

func read(pkg string, version int) []olmcore.Object {
	text := plainText
	if make := special[pkg]; make != nil {
		text = make(version)
	}
	text = strings.NewReplacer("PKG", pkg, "VERSION", fmt.Sprint(version)).Replace(text)
	found, err := decode.Read(Name(pkg, version), strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	objects, err := decode.Distinct(found)
	if err != nil {
		panic(err)
	}
	if pkg == "gamma" { // serves an API, too
		objects[0].(*v1alpha1.ClusterServiceVersion).Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{
			{Name: "ices", Group: "ice.example.com", Version: "v1", Kind: "Ice", DeploymentName: pkg, ContainerPort: 8443},
		}
	}
	return objects
}

const plainText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: PKG.vVERSION.0.0}
spec:
  version: VERSION.0.0
  installModes: [{type: OwnNamespace, supported: true}]
  customresourcedefinitions:
    owned: [{name: PKGs.example.com, kind: PKG, version: v1}]
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: PKG
        rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
      deployments:
      - name: PKG
        spec:
          selector: {matchLabels: {app: PKG}}
          template:
            metadata: {labels: {app: PKG}}
            spec:
              serviceAccountName: PKG
              containers: [{name: operator, image: "registry.example.com/PKG:VERSION"}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PKGs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: PKG, listKind: PKGList, plural: PKGs, singular: PKG}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// special are the manifests of packages with more than a Deployment. From one version to the next delta gains and loses
// a webhook, and from the fourth on another Deployment serves. From its third on beta may do more.
var special = map[string]func(version int) string{
	"delta": func(version int) string {
		text := deltaText
		if version%2 == 0 {
			text = strings.Replace(text, "  webhookdefinitions:", "  webhookdefinitions:\n"+deltaDefaulter, 1)
		}
		if version > 3 {
			text = strings.ReplaceAll(text, "delta-manager", "delta-next")
		}
		return text
	},
	"beta": func(version int) string {
		if version < 3 {
			return plainText
		}
		return strings.Replace(plainText, "verbs: [get]}]", "verbs: [get]}, {apiGroups: [\"\"], resources: [pods], verbs: [list]}]", 1)
	},
	"epsilon": func(int) string { return epsilonText },
	"zeta":    func(int) string { return zetaText },
}

const (
	deltaText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: PKG.vVERSION.0.0}
spec:
  version: VERSION.0.0
  installModes: [{type: AllNamespaces, supported: true}]
  customresourcedefinitions:
    owned: [{name: PKGs.example.com, kind: PKG, version: v1}]
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: vdelta.example.com
    deploymentName: delta-manager
    containerPort: 443
    targetPort: 9443
    webhookPath: /validate
    rules: [{operations: [CREATE, UPDATE], apiGroups: [example.com], apiVersions: [v1], resources: [deltas]}]
    admissionReviewVersions: [v1]
    sideEffects: None
  - type: ConversionWebhook
    generateName: cdelta.example.com
    deploymentName: delta-manager
    containerPort: 443
    targetPort: 9443
    webhookPath: /convert
    conversionCRDs: [deltas.example.com]
    admissionReviewVersions: [v1]
    sideEffects: None
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: PKG
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
      deployments:
      - name: delta-manager
        spec:
          selector: {matchLabels: {app: delta-manager}}
          template:
            metadata: {labels: {app: delta-manager}}
            spec:
              serviceAccountName: PKG
              containers: [{name: operator, image: "registry.example.com/PKG:VERSION"}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PKGs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: PKG, listKind: PKGList, plural: PKGs, singular: PKG}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`
	deltaDefaulter = `  - type: MutatingAdmissionWebhook
    generateName: mdelta.example.com
    deploymentName: delta-manager
    containerPort: 443
    targetPort: 9443
    webhookPath: /mutate
    rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [deltas]}]
    admissionReviewVersions: [v1]
    sideEffects: None`

	epsilonText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: PKG.vVERSION.0.0}
spec:
  version: VERSION.0.0
  installModes: [{type: AllNamespaces, supported: true}]
  apiservicedefinitions:
    owned: [{group: epsilon.example.com, version: v1, kind: epsilon, name: epsilons, deploymentName: PKG, containerPort: 443}]
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: PKG
        rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
      deployments:
      - name: PKG
        spec:
          selector: {matchLabels: {app: PKG}}
          template:
            metadata: {labels: {app: PKG}}
            spec:
              serviceAccountName: PKG
              containers: [{name: operator, image: "registry.example.com/PKG:VERSION"}]
`
	zetaText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: PKG.vVERSION.0.0}
spec:
  version: VERSION.0.0
  installModes: [{type: OwnNamespace, supported: true}, {type: MultiNamespace, supported: true}]
  customresourcedefinitions:
    owned: [{name: PKGs.example.com, kind: PKG, version: v1}]
  webhookdefinitions:
  - type: MutatingAdmissionWebhook
    generateName: mzeta.example.com
    deploymentName: PKG
    containerPort: 443
    targetPort: 9443
    webhookPath: /mutate
    rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [zetas]}]
    admissionReviewVersions: [v1]
    sideEffects: None
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: PKG
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
      deployments:
      - name: PKG
        spec:
          selector: {matchLabels: {app: PKG}}
          template:
            metadata: {labels: {app: PKG}}
            spec:
              serviceAccountName: PKG
              containers: [{name: operator, image: "registry.example.com/PKG:VERSION"}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PKGs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: PKG, listKind: PKGList, plural: PKGs, singular: PKG}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
)
