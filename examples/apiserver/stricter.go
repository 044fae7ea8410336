// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// cronDefinition is a definition whose custom resources have replicas.
const cronDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crons.example.com, labels: {olm.managed: "true"}}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crons, singular: cron, kind: Cron, listKind: CronList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer%s}}}}}}
`

// stricter is a plan for a definition that exists, and an OperatorGroup.
const stricter = `
status:
  storedVersions: [v1]
  acceptedNames: {plural: crons, singular: cron, kind: Cron, listKind: CronList}
  conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]
---
apiVersion: v1
kind: Namespace
metadata: {name: ops}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {namespace: ops, name: group}
spec: {targetNamespaces: [ops]}
status: {namespaces: [ops], lastUpdated: "2026-01-02T12:00:00Z"}
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {namespace: ops, name: stricter, finalizers: [operators.coreos.com/installplan-cleanup]}
spec: {approval: Automatic, approved: true, clusterServiceVersionNames: []}
status:
  phase: Installing
  startTime: %s
  catalogSources: []
  plan:
  - status: Unknown
    resolving: ""
    resource:
      {name: crons.example.com, group: apiextensions.k8s.io, version: v1, kind: CustomResourceDefinition, sourceName: "", sourceNamespace: "", manifest: %s}
`

// StricterSchema returns objects to Load: InstallPlan stricter of namespace ops, which began now, allows 9 replicas at
// most in the schema of definition crons.example.com. There are Crons of ops with as many as replicas says, by name.
func StricterSchema(replicas map[string]int) ([]olmcore.Object, error) {
	step, err := json.Marshal(fmt.Sprintf(cronDefinition, ", maximum: 9"))
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(cronDefinition, "") + fmt.Sprintf(strings.TrimPrefix(stricter, "\n"), time.Now().UTC().Format(time.RFC3339), step)
	for name, n := range replicas {
		text += fmt.Sprintf("---\n{apiVersion: example.com/v1, kind: Cron, metadata: {namespace: ops, name: %s}, spec: {replicas: %d}}\n", name, n)
	}
	read, err := decode.Read("stricter", strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return decode.Distinct(read)
}
