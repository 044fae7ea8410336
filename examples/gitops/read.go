// SPDX-License-Identifier: Apache-2.0

package olmgitops

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/olmcore/olm/olmcore"
)

// Read returns the objects of YAML or JSON documents, such as kubectl get -o yaml
// prints: those of lists one by one. Make a Reader of all of them with
// olmcore.NewSnapshot.
func Read(r io.Reader) ([]olmcore.Object, error) {
	var objects []olmcore.Object
	decoder := utilyaml.NewYAMLOrJSONDecoder(r, 4096)
	for n := 1; ; n++ {
		var document json.RawMessage
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		found, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		objects = append(objects, found...)
	}
}

func decode(document json.RawMessage) ([]olmcore.Object, error) {
	if len(document) == 0 || string(document) == "null" {
		return nil, nil
	}
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &list); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(list.Kind, "List") {
		o, err := olmcore.Decode(document)
		return []olmcore.Object{o}, err
	}
	objects := make([]olmcore.Object, len(list.Items))
	for i, item := range list.Items {
		var err error
		if objects[i], err = olmcore.Decode(item); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return objects, nil
}
