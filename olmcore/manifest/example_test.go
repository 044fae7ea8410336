// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/manifest"
)

// A List and further documents become objects; what cannot be read is named by file, document and field.
func ExampleRead() {
	text := `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: team}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: team}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group, namespace: team}
`
	read, err := manifest.Read("team.yaml", strings.NewReader(text))
	fmt.Println(len(read), err)
	objects, err := manifest.Distinct(read)
	for i, o := range objects {
		fmt.Printf("%T %s, document %d\n", o, olmcore.KeyOf(o), read[i].Document)
	}
	fmt.Println(err)

	_, err = manifest.Read("team.yaml", strings.NewReader(text+"spec: {targetNamespaces: team}"))
	fmt.Println(err)
	// Output:
	// 3 <nil>
	// *v1.Namespace Namespace team, document 1
	// *v1.ServiceAccount ServiceAccount team/robot, document 1
	// *v1.OperatorGroup OperatorGroup team/group, document 2
	// <nil>
	// team.yaml: document 2: invalid input: OperatorGroup cannot be decoded: json: cannot unmarshal string into Go struct field OperatorGroupSpec.spec.targetNamespaces of type []string
}
